//! The contract of [`oncue_store::Store`], as cases that every store must pass.
//!
//! A case is one function `fn rule(rig: &mut Rig)` in the file of its subject, and one line in a
//! list below. A store takes part by a module of its own with a [`rig::Harness`] and the line
//! `contract!(Harness::new());`, and, when it keeps anything over a restart,
//! `durable_contract!(Harness::new());`. After every case the rig compares the sum of all told
//! changes with the counts it finds by browsing.
//!
//! What the trait's prose leaves open and the cases settle stands at the head of
//! `oncue_core::queue::model`.

#![expect(unreachable_pub, reason = "cases are named by macros in their modules")]
#![expect(clippy::unwrap_used, reason = "a case fails where it unwraps")]

mod draft;
mod rig;

mod agreement;
mod bodies;
mod browsing;
mod chains;
mod due;
mod groups;
mod keys;
mod leases;
mod moves;
mod order;
mod records;
mod restart;
mod state;
mod suspects;
mod units;

/// Makes one test of each listed case.
macro_rules! tests {
    ($harness:expr; $($subject:ident: $($case:ident),+ $(,)?;)+) => {$(
        mod $subject {
            #[allow(unused_imports, reason = "a harness expression may need names of its module")]
            use super::*;
            $(
                #[test]
                fn $case() {
                    let mut rig = $crate::rig::Rig::new($harness);
                    $crate::$subject::$case(&mut rig);
                    rig.check();
                }
            )+
        }
    )+};
}

/// Every case that any store must pass.
macro_rules! contract {
    ($harness:expr) => {
        tests! { $harness;
            agreement:
                model_and_store_agree;
            order:
                equal_priorities_come_in_arrival_order,
                a_higher_priority_comes_first,
                a_late_high_priority_overtakes_what_is_left,
                fifo_looks_at_arrival_alone,
                arrival_is_by_id_not_by_commit,
                what_is_given_back_comes_in_its_old_place,
                a_take_by_id_takes_that_one_once,
                a_take_by_correlation_takes_those_in_order,
                a_take_from_no_queue_is_an_error,
                what_has_expired_is_passed_over,
                what_is_taken_is_what_was_put,
                the_oldest_is_of_those_ready_at_or_above_the_priority,
                ids_grow_and_never_repeat;
            groups:
                a_group_is_not_in_two_hands,
                a_free_group_counts_whole_by_priority,
                arrival_beats_priority_within_a_group,
                a_group_stands_where_its_first_member_stands,
                groups_go_side_by_side,
                groups_of_two_queues_are_two_groups,
                one_owner_takes_member_after_member,
                the_owners_next_member_stands_in_the_queues_order,
                by_id_only_the_first_member,
                by_correlation_only_the_first_member,
                a_member_that_waits_holds_those_behind_it,
                a_delayed_put_holds_only_those_behind_it,
                a_leased_member_holds_all_others,
                a_parked_member_holds_those_behind_it,
                a_move_frees_the_group_it_leaves_and_joins_the_one_it_meets,
                a_late_commit_under_an_early_id_becomes_the_first,
                an_expired_first_member_is_not_stepped_over,
                an_expired_member_is_claimed_though_its_group_is_held,
                the_oldest_of_a_group_is_of_any_ready_member;
            units:
                everything_in_a_unit_is_applied,
                a_unit_with_one_fault_leaves_no_trace,
                the_faults_have_their_names,
                a_released_message_is_fenced,
                a_second_release_is_harmless,
                a_refused_unit_keeps_its_messages_in_hand,
                an_empty_unit_commits,
                commit_numbers_grow_by_one,
                the_depth_bound_counts_messages_of_any_state,
                the_depth_bound_counts_the_units_own_puts,
                a28_one_unit_tells_each_queue_once,
                one_take_and_one_claim_tell_once,
                after_a_commit_is_answered_the_sink_knows,
                a_closed_store_refuses_units;
            chains:
                units_of_a_chain_are_applied_in_order,
                after_a_refused_unit_every_later_one_of_its_chain_is_undone,
                what_is_undone_stays_with_its_owner_and_can_be_run_again,
                a_chain_that_was_cut_stays_cut,
                any_refusal_undoes_puts_and_state_of_all_later_ones,
                a_closed_store_cuts_a_chain;
            keys:
                a_repeat_answers_the_first_and_stores_nothing,
                a_repeat_is_known_after_the_first_is_gone,
                another_message_under_the_key_is_refused,
                without_a_digest_nothing_is_compared,
                a_key_belongs_to_its_queue,
                a_key_is_forgotten_at_its_end,
                in_one_unit_a_repeat_answers_at_once,
                in_one_unit_another_message_under_the_key_is_refused,
                for_a_handler_a_taken_key_is_a_conflict,
                a_deleted_queue_forgets_its_keys,
                a_repeat_into_a_full_queue_is_answered;
            state:
                a_written_key_has_the_commits_number_as_revision,
                the_last_write_of_a_key_wins,
                an_outdated_read_is_a_conflict_and_nothing_is_written,
                a_deleted_key_is_absent_and_comes_back_with_a_new_revision,
                namespaces_are_apart,
                keys_are_listed_in_order_and_by_pages,
                an_empty_value_is_a_value;
            due:
                a_delayed_put_is_not_taken_until_claimed_and_requeued,
                a_delay_that_is_over_at_the_put_is_none,
                a_retry_and_a_deferral_become_due,
                a_claim_given_back_is_due_again,
                a_claim_is_bounded_and_the_rest_stays_due,
                next_due_is_exact,
                a19_what_expired_unswept_is_not_taken_and_is_claimed,
                waiting_and_parked_messages_expire,
                what_is_in_hand_does_not_expire,
                a_time_past_every_clock_never_comes;
            leases:
                an_ack_removes_the_message,
                a_selective_lease_does_not_hold_the_queue_open,
                a_nack_makes_it_wait,
                an_extension_moves_the_end,
                a_new_token_ends_the_old_one,
                a_lease_over_its_time_is_claimed_and_a_late_ack_refused,
                a_lease_over_its_time_may_be_settled_until_it_is_claimed,
                a_lease_given_back_is_a_lease_again,
                a_leased_message_expires_only_when_the_lease_is_over,
                a_token_never_given_is_unknown;
            moves:
                a_move_keeps_the_identity_and_bears_the_record,
                a_moved_message_stands_by_its_id,
                a_move_and_a_put_are_one_unit,
                a_message_born_dead_bears_its_record,
                a_parked_message_waits_for_an_operator,
                take_any_takes_whatever_the_state_and_release_puts_it_back,
                take_any_takes_nothing_that_is_not_there,
                a_body_is_gone_when_its_message_is;
            suspects:
                one_suspect_is_in_hand_at_a_time,
                suspects_are_passed_over_when_asked,
                suspects_count_like_any_other,
                a_suspect_that_is_leased_is_no_longer_in_hand,
                a_suspect_holds_its_group,
                clearing_the_count_clears_the_suspicion;
            bodies:
                a_body_is_read_by_range,
                a_large_body_is_read_in_parts,
                a_browsed_body_can_be_read;
            browsing:
                ready_messages_come_in_the_order_of_taking,
                ready_ones_come_first_then_the_others_by_state,
                expired_ones_are_passed_over,
                pages_are_as_long_as_asked_and_end,
                a_cursor_stands_while_messages_come_and_go,
                a_cursor_that_is_none_is_refused,
                a_cursor_of_another_queue_or_a_changed_one_is_refused,
                a_browse_takes_nothing,
                what_is_not_there_is_not_found;
            records:
                a_queue_exists_while_it_has_a_row,
                a_queue_with_messages_of_any_state_is_not_deleted,
                a_queue_made_anew_is_empty,
                a_unit_may_put_into_the_queue_it_makes,
                a_unit_may_not_put_into_the_queue_it_deletes,
                tasks_are_listed_newest_first_and_by_pages,
                the_newest_tasks_are_kept_within_a_bound,
                old_tasks_are_dropped_some_at_a_time,
                the_clock_of_a_store_is_its_caller;
        }
    };
}

/// Every case about what outlives the end of a store.
macro_rules! durable_contract {
    ($harness:expr) => {
        mod lasting {
            use super::*;
            tests! { $harness;
            agreement:
                model_and_store_agree_over_restarts;
            restart:
                persistent_messages_survive,
                settled_messages_stay_away,
                volatile_messages_vanish,
                what_was_in_hand_is_ready_again,
                waits_leases_and_parked_ones_survive,
                the_lives_of_messages_survive,
                keys_survive,
                groups_survive,
                a_group_in_hand_is_free_again,
                moves_and_dead_letters_survive,
                state_survives_with_its_revisions,
                records_and_tasks_survive,
                ids_never_repeat_over_a_restart,
                an_unclean_end_is_known,
                counts_after_a_restart_are_those_before;
            }
        }
    };
}

mod embedded;
mod memory;
