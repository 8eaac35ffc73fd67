import { rmSync } from "node:fs"
import { homes } from "./published.ts"

/** Removes at the end of all tests what they published. */
export const teardown = () => rmSync(homes, { recursive: true, force: true })
