"""Classes outside the project that are known to be `torch.nn.Module` subclasses, and names with a known meaning.

Everything under `torch.nn` whose last part is capitalised (`_Loss` as well) is taken for a module unless it is listed
as something else.
"""

from __future__ import annotations

MODULE_BASES = frozenset(
    """
    torch.jit.ScriptModule torch.jit.TracedModule torch.fx.GraphModule
    lightning.LightningModule lightning.pytorch.LightningModule lightning.pytorch.core.LightningModule
    lightning.fabric.wrappers._FabricModule
    pytorch_lightning.LightningModule pytorch_lightning.core.LightningModule
    pytorch_lightning.core.lightning.LightningModule
    transformers.PreTrainedModel transformers.modeling_utils.PreTrainedModel
    diffusers.ModelMixin diffusers.models.ModelMixin diffusers.models.modeling_utils.ModelMixin
    peft.PeftModel
    sentence_transformers.SentenceTransformer
    mmcv.runner.BaseModule
    mmengine.model.BaseModule mmengine.model.BaseModel
    fairseq.models.BaseFairseqModel fairseq.models.FairseqEncoder fairseq.models.FairseqDecoder
    fairseq.models.FairseqIncrementalDecoder fairseq.models.FairseqEncoderDecoderModel fairseq.modules.LayerNorm
    torch_geometric.nn.MessagePassing torch_geometric.nn.conv.MessagePassing
    torchrl.modules.TensorDictModule
    tensordict.nn.TensorDictModule
    megatron.core.transformer.module.MegatronModule megatron.core.transformer.MegatronModule
    nemo.core.NeuralModule nemo.core.classes.NeuralModule
    kornia.core.Module kornia.core.ImageModule
    xformers.components.attention.Attention
    huggingface_hub.PyTorchModelHubMixin.Module
    """.split()
)
_MODULE_PACKAGES = ("torch.nn.", "torch.ao.nn.", "torch.nn.modules.", "torchvision.models.", "torchvision.ops.")
_PACKAGES_OF_MODELS = ("timm.models.", "timm.layers.", "torchaudio.models.", "torchtext.models.", "open_clip.")
_NOT_MODULES = frozenset(
    {"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Buffer"}
)
_NOT_MODULE_PACKAGES = ("torch.nn.utils.", "torch.nn.init.", "torch.nn.attention.", "torch.nn.functional.")

PARAMETERS = frozenset(
    {
        "torch.nn.Parameter",
        "torch.nn.parameter.Parameter",
        "torch.nn.UninitializedParameter",
        "torch.nn.parameter.UninitializedParameter",
    }
)
BUFFERS = frozenset({"torch.nn.Buffer", "torch.nn.parameter.Buffer"})
COMPILERS = frozenset({"torch.compile", "torch._dynamo.optimize", "torch.compiler.compile"})
CUSTOM_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
OF_MODULES = frozenset(
    """add_module apply bfloat16 buffers children compile cpu cuda double eval float half load_state_dict modules
    named_buffers named_children named_modules named_parameters parameters register_buffer register_module
    register_parameter requires_grad_ state_dict to train type zero_grad""".split()
)
"""Methods of every `nn.Module`: what nothing is known of has these more often than a class of the project."""

IS_COMPILING = frozenset(
    """torch.compiler.is_compiling torch.compiler.is_dynamo_compiling torch._dynamo.is_compiling
    torch._dynamo.external_utils.is_compiling torch._utils.is_compiling""".split()
)
OTHER_COMPILERS = ("numba.", "triton.")
"""Packages whose decorators compile a function themselves: Dynamo does not trace it."""
STOPS = frozenset(
    """torch.compiler.disable torch._dynamo.disable torch._dynamo.decorators.disable torch._dynamo.skip
    torch._dynamo.disallow_in_graph torch.compiler.allow_in_graph torch._dynamo.allow_in_graph
    torch.compiler.assume_constant_result torch._dynamo.assume_constant_result torch.jit.script
    torch.jit.script_method torch.jit.export torch.library.custom_op torch._disable_dynamo""".split()
)
"""Decorators behind which Dynamo does not trace, or must not find other source than TorchScript finds."""


def is_module_class(qualified: str) -> bool:
    """True for classes of libraries that are known to be modules."""
    if qualified in MODULE_BASES:
        return True
    last = qualified.rpartition(".")[2]
    if not last.lstrip("_")[:1].isupper() or qualified in _NOT_MODULES:
        return False
    if qualified.startswith(_MODULE_PACKAGES):
        return not qualified.startswith(_NOT_MODULE_PACKAGES)
    if qualified.startswith(_PACKAGES_OF_MODELS):
        return True
    return qualified.startswith("transformers.") and last.endswith(("PreTrainedModel", "Model")) and "TF" not in last
