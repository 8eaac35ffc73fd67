/**
 * What a level of thinking is in tokens, for vendors that count thinking in these.
 */
import type { ThinkingLevel } from "../../RunOptions.ts"

export const budgets: Readonly<Record<Exclude<ThinkingLevel, "off">, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768
}
