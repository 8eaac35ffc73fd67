/**
 * Checks durations as applications write them, because `Duration` reads a value that it does not know as zero.
 */
import * as Duration from "effect/Duration"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

const inWords = /^(Infinity|\d+(\.\d+)? (nano|micro|milli|second|minute|hour|day|week)s?)$/
const unit = /^(nanosecond|microsecond|millisecond|second|minute|hour|day|week)s$/

const isAmount = (input: unknown): boolean => typeof input === "number" && input >= 0

/** Whether an object has only units as members, such as `{ minutes: 5 }`. `Duration` reads any other object as zero. */
const isByUnits = (input: unknown): boolean => {
  const members = Predicate.isObject(input) ? Object.entries(input) : []
  const isFine = ([name, amount]: [string, unknown]) =>
    unit.test(name) && (amount === undefined || isAmount(amount))
  return members.length > 0 && members.every(isFine)
}

/** Whether a value is a duration of zero or more: as text, milliseconds, nanoseconds (bigint), units or `Duration`. */
export const is = (input: unknown): input is Duration.Input => {
  if (typeof input === "bigint") return input >= 0n
  if (typeof input === "string") return inWords.test(input)
  if (Duration.isDuration(input)) return !Duration.isNegative(input)
  if (Array.isArray(input)) return input.length === 2 && input.every(isAmount)
  return isAmount(input) || isByUnits(input)
}

/** The accepted forms, for error messages. */
export const expected = 'a duration such as "30 seconds", milliseconds, { minutes: 5 } or "Infinity"'

/** The duration as JSON: milliseconds, or `"Infinity"`. */
export const toJson = (input: Duration.Input): number | "Infinity" => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(input))
  return Number.isFinite(millis) ? millis : "Infinity"
}

/** Accepts what `is` accepts. Encodes to milliseconds, or `"Infinity"`. */
export const DurationInput = Schema.declare(is, {
  expected,
  toCodecJson: () =>
    Schema.link<Duration.Input>()(
      Schema.Union([Schema.Finite, Schema.Literal("Infinity")]),
      SchemaTransformation.transform({ decode: (wire): Duration.Input => wire, encode: toJson })
    )
})

/** Accepts what `is` accepts. Encodes to whole milliseconds, or to infinity, in the form of `Schema.Duration`. */
export const Wait = Schema.declare(is, {
  expected,
  toCodecJson: () =>
    Schema.link<Duration.Input>()(
      Schema.Union([
        Schema.TaggedStruct("Infinity", {}),
        Schema.TaggedStruct("Nanos", { value: Schema.BigInt }),
        Schema.TaggedStruct("Millis", { value: Schema.Int })
      ]),
      SchemaTransformation.transform({
        decode: (wire): Duration.Input =>
          wire._tag === "Infinity"
            ? Duration.infinity
            : wire._tag === "Nanos"
              ? Duration.nanos(wire.value)
              : Duration.millis(wire.value),
        encode: (input) => {
          const millis = toJson(input)
          return millis === "Infinity"
            ? { _tag: millis }
            : { _tag: "Millis" as const, value: Math.min(Math.ceil(millis), Number.MAX_SAFE_INTEGER) }
        }
      })
    )
})
