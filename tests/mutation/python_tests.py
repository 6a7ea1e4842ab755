"""The modules whose faults are judged, and the tests that notice them: quick ones, which start no process."""

_ROWS = [
    "test_packed_rows.py::test_random_and_equal_lengths_fit_as_in_the_slow_version",
    "test_packed_rows.py::test_refit_never_needs_more_rows_than_best_fit",
    "test_packed_rows.py::test_two_and_three_pieces_fill_rows_exactly",
    "test_packed_rows.py::test_refit_finds_the_fewest_rows_of_few_pieces",
    "test_packed_rows.py::test_the_size_of_groups_never_changes",
    "test_packed_rows.py::test_a_stream_must_begin_with_a_mark",
    "test_packed_rows.py::test_every_token_is_in_one_row_in_order",
    "test_packed_rows.py::test_random_documents_are_in_rows",
    "test_packed_rows.py::test_columns_are_as_in_the_slow_version",
    "test_golden_outputs.py::test_files_are_as_they_were[packed folder format=llmc packing=best-fit]",
]
_RECIPE = [
    "test_mix_recipe.py::test_what_is_not_a_recipe_is_refused",
    "test_mix_recipe.py::test_files_that_are_not_toml_are_refused",
    "test_mix_recipe.py::test_paths_in_a_file_are_relative_to_it",
    "test_mix_recipe.py::test_seeds_and_defaults",
    "test_mix_recipe.py::test_the_manifest_gets_json",
    "test_mix_recipe.py::test_random_recipes_ask_what_the_slow_version_asks",
    "test_mix_recipe.py::test_the_largest_amount_that_is_named_fits_and_one_percent_more_does_not",
    "test_mix_recipe.py::test_impossible_amounts_are_refused",
]
_DRAWING = [
    "test_mix_shuffle.py::test_documents_are_found",
    "test_mix_shuffle.py::test_an_empty_stream_has_no_documents",
    "test_mix_shuffle.py::test_streams_that_are_not_documents_are_refused",
    "test_mix_shuffle.py::test_what_is_drawn_is_what_the_slow_version_draws",
    "test_mix_shuffle.py::test_passes_share_the_keys_by_their_tokens",
    "test_mix.py::test_a_mixture_is_that_of_the_slow_version",
    "test_mix_shuffle.py::test_everything_is_each_document_once",
]

_TRANSLATIONS = ["test_dialects.py::test_translations_and_errors_are_those_recorded"]

TESTS = {
    "analysis/measures.py": [
        "test_compare.py::test_renyi_entropy",
        "test_compare.py::test_efficiency",
        "test_compare.py::test_zipf",
        "test_compare.py::test_gini",
    ],
    "corpus/duplicates.py": ["test_corpus_duplicates.py", "test_corpus_clean.py::test_normalized"],
    "corpus/filters.py": ["test_corpus_filters.py"],
    "corpus/pii.py": ["test_corpus_pii.py"],
    "tokens/pack/rows.py": [
        "test_packed_rows.py::test_columns_are_as_in_the_slow_version",
        "test_packed_rows.py::test_a_spare_row_is_a_mark_and_padding",
        "test_pack.py::test_a_folder_is_packed",
        "test_pack.py::test_rows_have_columns_in_other_formats",
        "test_pack.py::test_check_refuses_another_T",
        "test_pack.py::test_rows_that_are_not_rows_are_found_in_other_formats",
    ],
    "tokens/pack/spans.py": _ROWS,
    "loading/sampling.py": ["test_sampling.py"],
    "pattern/dialects/__init__.py": [
        *_TRANSLATIONS,
        "test_dialects.py::test_first_uncovered",
        "test_patterns_elsewhere.py::test_patterns_that_leave_text_out_are_refused",
    ],
    "pattern/dialects/parse.py": _TRANSLATIONS,
    "pattern/dialects/tree.py": [
        *_TRANSLATIONS,
        "test_dialects.py::test_first_uncovered",
        "test_automata.py::test_patterns_of_models",
    ],
    "tokens/mix/drawing.py": _DRAWING,
    "tokens/mix/recipe.py": _RECIPE,
}

# Of these tests, those that are left out because they take long
SLOW = [
    "test_corpus_filters.py::test_ngrams_of_a_long_text",
    "test_corpus_pii.py::test_time_is_linear",
    "test_sampling.py::test_all_orders_are_about_equally_likely",
]
