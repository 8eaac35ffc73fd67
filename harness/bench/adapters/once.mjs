/** Made once for each object: an application has its tools before its runs, and does not make them for each. */
export const once = (make) => {
  const known = new WeakMap()
  return (key) => {
    if (!known.has(key)) known.set(key, make(key))
    return known.get(key)
  }
}
