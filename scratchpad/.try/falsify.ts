import { Effect, Schema, Arbitrary } from "effect"
import { RunFailed } from "effect-agent"
const schema: any = (RunFailed as any).RunFailed
const json = Schema.toCodecJson(schema)
const r: any = await Effect.runPromise(Arbitrary.check([Arbitrary.fromSchema(schema)] as any, (v: any) => {
  const e = Schema.encodeUnknownSync(json as any)(v); const b = JSON.parse(JSON.stringify(e)); const d = Schema.decodeUnknownSync(json as any)(b)
  return JSON.stringify(Schema.encodeUnknownSync(json as any)(d)) === JSON.stringify(e)
} , { runs: 300, seed: 7 } as any) as any)
console.log(JSON.stringify(r).slice(0, 3000))
