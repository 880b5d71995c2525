/** The families of browsers that a list of sessions names. */
export const browserFamilies = ['edge', 'opera', 'samsung', 'firefox', 'chrome', 'safari', 'curl', 'other'] as const
export type BrowserFamily = (typeof browserFamilies)[number]

/** Maximum number of characters of a `user-agent` header that are looked at. */
const readMax = 512

/** In this order, because browsers also name those that they imitate. */
const marks: readonly (readonly [BrowserFamily, RegExp])[] = [
  ['edge', /\bEdgA?(iOS)?\//],
  ['opera', /\b(OPR|OPiOS|Opera)\//],
  ['samsung', /\bSamsungBrowser\//],
  ['firefox', /\b(Firefox|FxiOS)\//],
  ['chrome', /\b(Chrome|Chromium|CriOS|HeadlessChrome)\//],
  ['safari', /\bSafari\//],
  ['curl', /^curl\//],
]

/** Returns the family of a browser. The header itself is not stored, because it tells more about a person than the list needs. */
export function browserFamily(userAgent: string | undefined): BrowserFamily | null {
  if (userAgent === undefined || userAgent === '') return null
  const text = userAgent.slice(0, readMax)
  return marks.find(([, mark]) => mark.test(text))?.[0] ?? 'other'
}
