import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { join } from "node:path"
import * as Configuration from "../../src/cli/Configuration.ts"

describe("the JSON Schema of the configuration", () => {
  // `npm test -- --run -u test/cli/Configuration.test.ts` writes it anew.
  it("is published as the program reads it", async () => {
    const { definitions, schema } = Schema.toJsonSchemaDocument(Configuration.Content, {
      onExcessProperty: "error"
    })
    const published = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      ...schema,
      ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
    }
    await expect(`${JSON.stringify(published, undefined, 2)}\n`).toMatchFileSnapshot(
      join(import.meta.dirname, "../../config.schema.json")
    )
  })
})
