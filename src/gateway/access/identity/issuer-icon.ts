/** Pictures of the ways to sign in. They are `data:` URLs that pages show in an `img`, where a picture runs no script and loads nothing. */

/** Largest picture, in characters of its `data:` URL. */
const iconCharsMax = 24_000

const drawn = (shapes: string): string =>
  `data:image/svg+xml;base64,${Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#7a8194" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">${shapes}</svg>`,
  ).toString('base64')}`

/** The pictures that the operator can name. */
export const builtInIcons: Readonly<Record<string, string>> = {
  key: drawn('<circle cx="8" cy="15" r="4"/><path d="M11 12 20 3M16 7l3 3"/>'),
  building: drawn('<path d="M4 21V5l8-2v18M12 9l8 2v10M2 21h20M8 8v0M8 12v0M8 16v0M16 14v0M16 17v0"/>'),
  people: drawn('<circle cx="9" cy="8" r="3.5"/><path d="M2.5 20a6.5 6.5 0 0 1 13 0M16 4.8a3.5 3.5 0 0 1 0 6.4M18 14.2a6.5 6.5 0 0 1 3.5 5.8"/>'),
  shield: drawn('<path d="M12 3 4 6v6c0 5 3.5 8 8 9 4.5-1 8-4 8-9V6zM9 12l2 2 4-4"/>'),
}

const pngStart = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const dataUrl = /^data:image\/(png|svg\+xml);base64,([A-Za-z0-9+/]+={0,2})$/
/** What a picture of an operator never needs: scripts, handlers, other documents and addresses of others. */
const activeSvg = /<script|<foreignobject|<!doctype|<!entity|<iframe|<use|\son[a-z]+\s*=|href\s*=|javascript:|url\s*\(|@import/i

/** Returns the picture as a `data:` URL: a built-in one by its name, or a PNG or SVG. Returns null for everything else. */
export function iconOf(text: string): string | null {
  if (Object.hasOwn(builtInIcons, text)) return builtInIcons[text] ?? null
  const [, kind, base64] = (text.length <= iconCharsMax && dataUrl.exec(text)) || []
  if (kind === undefined || base64 === undefined) return null
  const bytes = Buffer.from(base64, 'base64')
  if (kind === 'png') return bytes.subarray(0, pngStart.length).equals(pngStart) ? text : null
  const svg = bytes.toString('utf8')
  return /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/.test(svg) && !activeSvg.test(svg) ? text : null
}
