"""All rules of the architecture, by what they promise."""

from __future__ import annotations

from tests.architecture import documents, layers, old_python, portability, purity, shape
from tests.architecture.source_tree import Rule

RULES: tuple[Rule, ...] = (
    layers.packages_are_known,
    layers.imports_follow_the_layers,
    layers.third_party_imports_stay_where_they_may,
    purity.pure_packages_import_pure_modules,
    purity.pure_packages_do_nothing_impure,
    purity.the_client_imports_everywhere,
    purity.the_wall_clock_is_read_in_one_place,
    shape.files_are_short,
    shape.names_say_something,
    shape.modules_open_with_a_docstring,
    shape.packages_say_what_may_live_in_them,
    shape.packages_have_an_init,
    shape.inits_only_export,
    old_python.jobs_import_only_what_old_images_have,
    old_python.jobs_run_on_old_python,
    documents.named_paths_exist,
    documents.named_modules_exist,
    documents.named_make_targets_exist,
    documents.links_lead_somewhere,
    portability.nothing_names_a_network_or_a_machine,
)
