/** Strict JSON for signed documents. It accepts only a text that every reader understands in the same way. */

/** The error for a text that can be read in more than one way, or that is not an attestation. */
export class AmbiguousJsonError extends Error {
  override readonly name = 'AmbiguousJsonError'
}

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g

/**
 * Returns the value of a JSON text. Throws AmbiguousJsonError in four cases. The text is not JSON. An object has a name twice (readers disagree on
 * which one counts). A name is not in `names` (some readers treat `Total` and `total` as one). A number has more digits than a double (the signed
 * number would differ from the written one).
 */
export function parseStrictJson(text: string, names = /^/): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new AmbiguousJsonError('it is no JSON', { cause })
  }
  // JSON.parse has already checked the grammar, so a walk over the tokens is enough.
  const open: (Set<string> | null)[] = []
  let before = ''
  for (const [token] of text.matchAll(tokens)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(null)
    else if (token === '}' || token === ']') open.pop()
    else if (token === ':') addName(open.at(-1) ?? null, before, names)
    else if (/^[-\d]/.test(token) && exactly(token) !== exactly(String(Number(token))))
      throw new AmbiguousJsonError(`the number ${token.slice(0, 40)} is more exact than a double`)
    before = token
  }
  return value
}

function addName(names: Set<string> | null, token: string, known: RegExp): void {
  const name = String(JSON.parse(token))
  if (!known.test(name)) throw new AmbiguousJsonError(`the name ${token.slice(0, 40)} is of no attestation`)
  if (names?.has(name)) throw new AmbiguousJsonError(`the name ${token.slice(0, 40)} occurs twice in one object`)
  names?.add(name)
}

/** Returns a decimal number in one spelling: its digits without leading and trailing zeros, and the position of the decimal point. */
function exactly(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const short = digits.replace(/0+$/, '')
  return short === '' ? '0' : `${sign}${short}e${Number(exponent) - fraction.length + digits.length - short.length}`
}
