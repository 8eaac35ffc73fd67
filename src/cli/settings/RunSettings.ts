/** The settings of the bounds of a run, and of the program itself. */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { table as limits } from "../../internal/limitTable.ts"
import * as Setting from "./Setting.ts"
import type { Rules } from "./Source.ts"
import * as Values from "./Values.ts"

/** A project may lower a bound, which is `usual` where the user has none. */
const below = (usual = Infinity): Pick<Rules<number>, "widens"> => ({
  widens: (value, otherwise) => value > Option.getOrElse(otherwise, () => usual)
})

export const settings = {
  maxTurns: Setting.number({
    name: "max-turns",
    metavar: "N",
    description: `Maximum model calls. Default: ${limits.maxTurns.initial}`,
    isFine: Values.isCount,
    expected: "a number above 0",
    rules: below(limits.maxTurns.initial)
  }),
  maxCost: Setting.number({
    name: "max-cost",
    metavar: "USD",
    description: "Maximum cost of the run in US dollars. Default: none",
    isFine: (value) => value > 0,
    expected: "a number above 0",
    rules: below()
  }),
  maxTokensTotal: Setting.number({
    name: "max-tokens-total",
    metavar: "N",
    description: "Maximum tokens of the run, requests and answers together. Default: none",
    isFine: Values.isCount,
    expected: "a number above 0",
    rules: below()
  }),
  timeout: Setting.text({
    name: "timeout",
    metavar: "TIME",
    description: "Time limit of the run, such as 90s, 5m or 1h. Default: none",
    read: Values.duration,
    expected: "a time such as 90s, 5m or 1h",
    rules: {
      widens: (value, otherwise) => Option.exists(otherwise, (own) => Duration.isGreaterThan(value, own))
    }
  }),
  failOnRefusal: Setting.toggle({
    name: "fail-on-refusal",
    description: "Exit with 5 if a tool call was refused, although the model answered"
  }),
  noDetect: Setting.toggle({
    name: "no-detect",
    description: "Do not look for a local server when no key is set. CI=true does the same"
  }),
  noColor: Setting.toggle({
    name: "no-color",
    description: "No colours on a terminal. NO_COLOR does the same",
    isKept: false
  }),
  verbose: Setting.toggle({
    name: "verbose",
    description: "Log more on stderr, including causes of failures. DEBUG does the same",
    isKept: false
  })
}
