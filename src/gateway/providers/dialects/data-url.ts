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
  const base64 = url.slice(comma + 1).replace(/\s+/g, '')
  return base64 === '' ? null : { mediaType: mediaType.trim().toLowerCase(), base64 }
}
