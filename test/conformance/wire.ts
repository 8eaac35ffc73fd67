import type { Kind } from "./suite.ts"
export const kind: Kind = async () => ({ cases: [], concurrency: 1 })
