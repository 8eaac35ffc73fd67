/**
 * The codes of errors in the unions of the vendors' SDKs: openai 7.57.0, @anthropic-ai/sdk 1.14.0 and client-bedrock-runtime 3.1164, and
 * those of google.rpc.Code. A new version of one is compared with these lists.
 */
const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

/** `ResponseError.code` of OpenAI. */
export const openAi =
  words(`server_error rate_limit_exceeded invalid_prompt data_residency_mismatch bio_policy
  misalignment_policy_violation vector_store_timeout invalid_image invalid_image_format invalid_base64_image invalid_image_url
  image_too_large image_too_small image_parse_error image_content_policy_violation invalid_image_mode image_file_too_large
  unsupported_image_media_type empty_image_file failed_to_download_image image_file_not_found`)

/** `ErrorType` of Anthropic, with its status. */
export const anthropicTypes: ReadonlyArray<readonly [type: string, status: number]> = [
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["rate_limit_error", 429],
  ["timeout_error", 504],
  ["api_error", 500],
  ["overloaded_error", 529],
  ["memory_precondition_failed_error", 409],
  ["memory_path_conflict_error", 409],
  ["conflict_error", 409]
]

/** `error.details.error_code` of Anthropic, by the status of its class. */
export const anthropic: Readonly<Record<number, string>> = {
  400: `already_member approval_required available_tools_limit_exceeded bundle_attachment_not_supported bundle_on_call cannot_invite_emails_with_unverified_domains cannot_remove_last_member cannot_sign_out_primary_owner cannot_sign_out_self claude_code_key_creator_not_member claude_code_version_too_old cmek_feature_unsupported cmek_key_disabled cmek_key_network_blocked cmek_not_approved compaction_block_ambiguous compaction_block_misplaced compaction_content_mismatch compaction_incomplete_turn compaction_nothing_to_summarize compaction_signature_invalid compaction_too_many_tool_references compaction_tool_changes_mismatch email_domain_not_allowed environment_archived external_key_in_workspace_policy external_key_not_found external_key_provider_mismatch external_key_validation_failed external_key_validation_timed_out external_storage_in_use external_storage_in_workspace_policy external_storage_not_available file_not_downloadable gcp_project_not_verified grant_required human_review_not_available human_review_on_with_external_storage image_dimensions_too_large invalid_config_type_change invalid_metadata invalid_storage_arn invite_already_exists key_profile_mismatch org_api_key_limit_exceeded org_member_limit_exceeded organization_not_eligible organization_not_enrolled_in_beta organization_on_hold organization_type_not_supported parent_organization_required provider_not_allowed rbac_group_grants_owner_access rbac_group_order_limit_exceeded rbac_group_owner_access_unconfirmed region_not_supported request_body_encoding_invalid request_body_encoding_unsupported request_body_timeout scan_failed settings_document_limit_exceeded settings_history_limit_exceeded slack_channel_set_up_settings_refused storage_attach_limit_reached storage_not_approved storage_not_attachable storage_profile_mismatch storage_profile_still_required storage_quota_exceeded storage_verification_failed thread_already_continued thread_continue_in_flight thread_fingerprint_mismatch thread_unsupported_request tool_name_conflict tool_reference_unresolved transcripts_storage_required unsupported_charset unsupported_region user_profile_not_found user_profile_required workspace_api_key_limit_exceeded workspace_human_review_disabled workspace_member_limit_exceeded workspace_policy_violation`,
  402: `linked_organization_billing_unavailable linked_organization_spend_limit_reached`,
  403: `api_key_scope_missing cannot_sign_out_managed_member cannot_sign_out_membership_admin cannot_sign_out_owner cannot_sign_out_privileged_member claude_tag_writes_not_enabled compliance_configuration_restricted environment_create_disabled environment_update_disabled organization_level_scoped_api_key_required sandbox_egress_restricted spend_limits_admin_api_writes_not_enabled user_profile_billing_not_authorized user_profile_not_billable`,
  404: `environment_not_found file_expired rbac_group_managed_settings_not_found rbac_group_not_found rbac_role_not_found slack_channel_set_up_environment_not_found thread_not_found`,
  409: `concurrent_membership_change external_key_changed gcp_project_controlled_by_another_organization plugin_name_taken scan_pending skill_name_taken skill_read_blocked_undecryptable slack_channel_set_up_settings_conflict storage_already_registered storage_attached_during_archive storage_changed_concurrently storage_in_use workspace_changed_concurrently`,
  412: `heartbeat_precondition_failed`,
  413: `request_body_too_large_after_decoding`,
  429: `contract_spend_limit_reached enforced_spend_limit_reached ramp_limit_exceeded`,
  503: `authorization_check_unavailable change_outcome_unknown cmek_context_unavailable cmek_key_unreachable registration_pending workspace_created_incomplete`,
  529: `compaction_unavailable`
}

/** The codes of Anthropic by their status. */
export const anthropicCodes = Object.entries(anthropic).flatMap(([status, codes]) =>
  words(codes).map((code) => [Number(status), code] as const)
)

/** Exceptions of Bedrock. */
export const bedrock =
  words(`AccessDeniedException ConflictException InternalServerException ModelErrorException
  ModelNotReadyException ModelStreamErrorException ModelTimeoutException ResourceNotFoundException ServiceQuotaExceededException
  ServiceUnavailableException ThrottlingException ValidationException`)

/** Names of google.rpc.Code, with the status of HTTP. */
export const google: ReadonlyArray<readonly [name: string, status: number]> = [
  ["INVALID_ARGUMENT", 400],
  ["FAILED_PRECONDITION", 400],
  ["OUT_OF_RANGE", 400],
  ["UNAUTHENTICATED", 401],
  ["PERMISSION_DENIED", 403],
  ["NOT_FOUND", 404],
  ["ALREADY_EXISTS", 409],
  ["ABORTED", 409],
  ["RESOURCE_EXHAUSTED", 429],
  ["CANCELLED", 499],
  ["DATA_LOSS", 500],
  ["UNKNOWN", 500],
  ["INTERNAL", 500],
  ["UNIMPLEMENTED", 501],
  ["UNAVAILABLE", 503],
  ["DEADLINE_EXCEEDED", 504]
]
