/**
 * Ends a test of the engine that hangs after two seconds, not after a minute: its time is that of a `TestClock`, which warns of sleeps
 * that no `adjust` ends. Tests that take longer give a timeout of their own.
 */
import { expect, vi } from "vitest"

const path = expect.getState().testPath ?? ""
if (/\/test\/(behaviour|laws)\//.test(path) && !path.endsWith(".slow.test.ts"))
  vi.setConfig({ testTimeout: 2_000 })
else vi.resetConfig()
