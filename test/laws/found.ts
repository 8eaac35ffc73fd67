/**
 * Plans that broke a law once, made small, with what was wrong. They stay.
 */
import type { Plan } from "./plan.ts"

const calm: Plan = {
  answers: [],
  hooks: [],
  deeds: [],
  runs: ["prompt"],
  steeringMode: "one-at-a-time",
  followUpMode: "one-at-a-time",
  rules: {
    toolExecution: "parallel",
    toolConcurrency: 16,
    toolFailureMode: "continue",
    steeringPolicy: "afterTurn",
    emptyResponse: "accept",
    hookFailureMode: "warn",
    onMaxTurns: "fail",
    maxTurns: 50,
    maxToolCalls: "none",
    maxIdenticalToolCalls: 5,
    maxTotalTokens: "none",
    executionTime: "none"
  },
  subscribed: true
}

const calling = (to: Plan["answers"][number]["calls"][number]["to"]): Plan["answers"][number] => ({
  pieces: 0,
  thinks: false,
  calls: [{ to, twice: true }],
  ending: "finish"
})

export const found: Readonly<Record<string, Plan>> = {
  "a run whose caller is interrupted by its first event is known all the same": {
    ...calm,
    runs: ["start"],
    deeds: [{ at: 0, does: "interrupt" }]
  },
  "steering that skipped calls is not lost when the batch fails the run": {
    ...calm,
    answers: [calling("badParams")],
    deeds: [{ at: 4, does: "steer" }],
    rules: {
      ...calm.rules,
      toolExecution: "sequential",
      toolFailureMode: "fail",
      steeringPolicy: "skipRemaining"
    }
  },
  "calls have results when an afterModel hook fails the run": {
    ...calm,
    answers: [calling("plain")],
    hooks: [{ point: "afterModel", does: "fail", way: 0, nth: 0 }],
    rules: { ...calm.rules, hookFailureMode: "fail" }
  },
  "an answer that is stopped as it begins has a start": {
    ...calm,
    runs: ["leave"],
    deeds: [
      { at: 5, does: "steer" },
      { at: 0, does: "followUp" }
    ]
  },
  "messages a hook gave are not lost when the next hook fails": {
    ...calm,
    hooks: [
      { point: "steering", does: "act", way: 0, nth: 1 },
      { point: "steering", does: "die", way: 0, nth: 1 }
    ]
  }
}
