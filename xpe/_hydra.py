"""Everything that needs Hydra to compose a config: schema, search path, errors in our words.

Importing this module registers the schema, the search path and the resolver `xpe.fingerprint`;
the job function of a sweep imports it too, so they exist in the processes of any launcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_module
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import CompactHydraException, ConfigCompositionException, SearchPathException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from xpe._explain import unknown_key
from xpe._folders import user_folders
from xpe._overrides import check_choices, quoted
from xpe.errors import ConfigError

CONFIGS = "pkg://xpe.conf"

OPEN = ("gen_kwargs", "samples")
"""Settings at the root that are mappings with keys of the user's."""

_groups: list[str] = []


class XpeSearchPath(SearchPathPlugin):  # type: ignore[misc]
    """Puts the user's folders before ours, so that they can shadow it."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Prepend them, the strongest last; other Hydra apps in the process are left alone."""
        if any(entry.path == CONFIGS for entry in search_path.get_path()):
            for folder in reversed(user_folders()):
                search_path.prepend("xpe", f"file://{folder}")


def register(names: Sequence[str], groups: Sequence[str], resolver: Callable[[Any], str]) -> None:
    """Register schema, search path and `xpe.fingerprint`; `names` are the keys of the root.

    Groups and mappings are open: a file does not have to state a key that an override sets.
    """
    _groups[:] = groups
    opened = [*groups, *OPEN]
    root = OmegaConf.create({name: {} if name in opened else None for name in names})
    for name in opened:
        OmegaConf.set_struct(root[name], False)
    ConfigStore.instance().store(name="schema", node=root)
    Plugins.instance().register(XpeSearchPath)

    def fingerprint(*, _root_: DictConfig) -> str:
        return resolver(_root_)

    OmegaConf.register_new_resolver("xpe.fingerprint", fingerprint, replace=True)


def check(overrides: Sequence[str]) -> None:
    """Raise for a key at the root or an option of a group that does not exist."""
    check_choices(overrides, list(_schema()), [*_groups, "experiment"])


def _schema() -> DictConfig:
    node: DictConfig = ConfigStore.instance().load("schema.yaml").node
    return node


def compose(overrides: Sequence[str]) -> DictConfig:
    """Compose `config.yaml` with overrides; the state of a surrounding Hydra app is kept."""
    texts = [text for text, _ in quoted(overrides, multirun=False)]
    check(texts)
    state = GlobalHydra.instance()
    surrounding, state.hydra = state.hydra, None
    try:
        with in_our_words(), initialize_config_module("xpe.conf", version_base="1.3"):
            made: DictConfig = hydra_compose("config", overrides=texts)
            return made
    finally:
        GlobalHydra.instance().hydra = surrounding


def plain(cfg: Any) -> dict[str, Any]:
    """Return a composed config as dicts and lists, interpolations resolved, without `hydra`."""
    if not isinstance(cfg, DictConfig):
        return dict(cfg)
    with in_our_words():
        bare = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
        made: Any = OmegaConf.to_container(bare, resolve=True, throw_on_missing=True)
    return {str(key): value for key, value in made.items()}


@contextmanager
def in_our_words() -> Iterator[None]:
    """Translate what Hydra, OmegaConf and the YAML reader raise into ConfigError."""
    try:
        yield
    except MissingMandatoryValue as error:
        key = getattr(error, "full_key", None) or str(error).splitlines()[0]
        raise ConfigError(f"{key}: is needed but not given. Set it with {key}=…") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"a config file is not valid YAML: {error}") from None
    except (CompactHydraException, SearchPathException, OmegaConfBaseException) as error:
        raise _explained(error) from None


def _explained(error: Exception) -> ConfigError:
    inner = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    key = str(getattr(inner, "full_key", None) or "")
    text = str(error).split("\n    full_key:")[0].strip()
    if isinstance(error, ConfigCompositionException) and "is not in struct" in str(inner):
        return unknown_key("", key.partition(".")[0], [str(k) for k in _schema()])
    if inner is not error:
        text = f"{text}: {str(inner).splitlines()[0]}"
    return ConfigError(f"{key}: {text}" if key and key not in text else text)
