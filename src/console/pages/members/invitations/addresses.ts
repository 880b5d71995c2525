const separators = /[\s,;<>"'()]+/
const shape = /^[^@]+@[^@]+\.[^@.]+$/

/**
 * Returns the mail addresses in a text that a person typed or pasted, each once, in their order. Names around an address, as mail programs write them, are left
 * out. The gateway decides whether an address is one.
 */
export function addressesIn(text: string): readonly string[] {
  const found = new Map<string, string>()
  for (const word of text.split(separators)) {
    const address = word.replace(/^mailto:/i, '').replace(/\.$/, '')
    if (shape.test(address) && !found.has(address.toLowerCase())) found.set(address.toLowerCase(), address)
  }
  return [...found.values()]
}
