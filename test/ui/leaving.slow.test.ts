import { describe, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import * as Leaving from "./leaving.ts"

describe("GET /ui/chat/{chatId}/stream", () => {
  it.live(
    "resumes at 100 random places where a client has left, without a gap and without a double",
    () =>
      Effect.gen(function* () {
        for (let breaks = 0; breaks < 100; ) breaks += yield* Leaving.often
      }).pipe(Random.withSeed("leaving")),
    120_000
  )
})
