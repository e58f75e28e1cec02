"""Abstract values and the dataflow over one function; the API of torch as tables."""
