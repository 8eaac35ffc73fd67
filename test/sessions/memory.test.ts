import { Effect } from "effect"
import { MemorySessionStore } from "effect-agent/sessions"
import { contract } from "./contract.ts"

contract({ name: "memory", storage: Effect.sync(MemorySessionStore.storage) })
