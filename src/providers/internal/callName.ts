/**
 * The names of tool calls in the form that vendors accept. A model may call a name that no tool has, with
 * characters that vendors reject.
 */
export const spelt = (name: string, length: number): string =>
  name.replace(/[^\w-]/g, "_").slice(0, length) || "_"
