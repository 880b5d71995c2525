import { z } from 'zod'

/** A path of this gateway. It begins with exactly one slash and is printable ASCII. It has no backslash, because browsers treat a backslash as a slash. */
const ownPath = /^\/(?![/\\])[!-[\]-~]*$/
const ownPathMax = 2000

/** Returns true when a browser that is redirected to this text stays on the gateway. */
export function isOwnPath(text: string): boolean {
  return text.length <= ownPathMax && ownPath.test(text)
}

/** The query parameter with the path to which the browser goes after sign-in. */
export const returnToSchema = z
  .string()
  .refine(isOwnPath, 'must be a path of this gateway: it begins with one "/" and holds no scheme, host, space or backslash')
  .optional()
  .describe('Path of this gateway to go to after signing in. Default: /me.')
