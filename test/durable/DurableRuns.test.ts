import { describe, it } from "@effect/vitest"
import * as Contract from "../server/runsContract.ts"
import { make } from "./embedded.ts"

describe("DurableRuns", () => {
  Contract.check(make, it.live)
})
