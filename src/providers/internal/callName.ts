/**
 * Names of calls as vendors take them back. A call is as the model wrote it, which may be the name of no tool, and in no
 * vendor's alphabet: one such name has them refuse the whole conversation.
 */
export const spelt = (name: string, length: number): string =>
  name.replace(/[^\w-]/g, "_").slice(0, length) || "_"
