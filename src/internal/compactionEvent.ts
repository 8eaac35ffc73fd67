/**
 * The members of the event `Compaction`.
 */
import * as Schema from "effect/Schema"
import { CompactionFailed } from "./failureReason.ts"
import { Usage } from "../Usage.ts"

/** The reason for a compaction. */
export const reason = Schema.Literals(["threshold", "overflow", "manual"])

export const members = {
  status: Schema.Literals(["start", "end", "failed"]),
  reason,
  /** The tokens of the request without the compaction, measured or estimated. */
  tokensBefore: Schema.optionalKey(Schema.Finite),
  /** The tokens of the request with it; present at the end. */
  tokensAfter: Schema.optionalKey(Schema.Finite),
  /** The id of the compaction, unique like that of a message; present at the end. */
  entryId: Schema.optionalKey(Schema.String),
  /** The failure; present where it failed. */
  error: Schema.optionalKey(CompactionFailed),
  /** The tokens of the model calls that made the summary; absent if there were none. */
  usage: Schema.optionalKey(Usage)
}
