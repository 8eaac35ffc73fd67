/**
 * What is made of objects that do not change, made once for each: the texts of messages and tools above all, which the loop
 * sends again with every turn, so that a request costs what is new in it, and one join.
 */

/** Remembers what `make` gave for an object, as long as the object lives. */
export const once = <Key extends object, Value>(make: (key: Key) => Value): ((key: Key) => Value) => {
  const known = new WeakMap<Key, { readonly value: Value }>()
  return (key) => {
    const found = known.get(key)
    if (found !== undefined) return found.value
    const value = make(key)
    known.set(key, { value })
    return value
  }
}
