import { describe, it } from "@effect/vitest"
import { compare, isInstalled } from "./searches.ts"

describe("Ripgrep", () => {
  for (const seed of Array.from({ length: 8 }, (_, index) => index + 1)) {
    it.live.skipIf(!isInstalled)(
      `finds with rg, where it is installed, what it finds alone: tree ${seed}`,
      () => compare(seed, (index) => index % 3 === seed % 3),
      60_000
    )
  }
})
