import type { Reason } from "../../ProviderError.ts"
import { isReason } from "../Protocol.ts"

/** The words of a reason, `undefined` for anything that could be encoded. */
export const detailIn = <A>(encoded: A | Reason): string | undefined =>
  isReason(encoded) ? encoded.detail : undefined
