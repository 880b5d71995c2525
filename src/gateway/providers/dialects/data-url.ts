/** The parts of a base64 `data:` URL. */
export interface DataUrl {
  readonly mediaType: string
  /** Base64 without white space. */
  readonly base64: string
}

/** Maximum length of the part before the comma of a data URL. */
const headMaxChars = 256

/** Returns the parts of a base64 data URL, or null for any other text. Parameters other than `base64` are ignored. */
export function dataUrlOf(url: string): DataUrl | null {
  if (!/^data:/i.test(url)) return null
  const comma = url.slice(0, headMaxChars).indexOf(',')
  if (comma === -1) return null
  const [mediaType = '', ...parameters] = url.slice('data:'.length, comma).split(';')
  if (!parameters.some(parameter => parameter.trim().toLowerCase() === 'base64')) return null
  const base64 = withoutSpace(url.slice(comma + 1))
  return base64 === '' ? null : { mediaType: mediaType.trim().toLowerCase(), base64 }
}

/** Removes white space. A regular expression would take seconds for millions of matches. Base64 has one byte a character. */
function withoutSpace(text: string): string {
  if (!/\s/.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  let length = 0
  for (const byte of bytes) if (byte > 0x20) bytes[length++] = byte
  return bytes.toString('latin1', 0, length)
}
