/** Flags that are no settings. */
import * as Flag from "effect/cli/Flag"

/** A flag without a value. */
export const is = (name: string, text: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(text), Flag.withDefault(false), Flag.withoutNegation)

export const optionalText = (name: string, metavar: string, text: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(text), Flag.optional)
