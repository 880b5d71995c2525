import { z } from 'zod'

/** A path of ours as text: one slash, printable ASCII, no backslash, which browsers read as a slash. */
const ownPath = /^\/(?![/\\])[!-[\]-~]*$/
const ownPathMax = 2000

/** Whether a browser that is sent there stays on this gateway. */
export function isOwnPath(text: string): boolean {
  return text.length <= ownPathMax && ownPath.test(text)
}

/** Where to go after signing in, as a query parameter. */
export const returnToSchema = z
  .string()
  .refine(isOwnPath, 'must be a path of this gateway: it begins with one "/" and holds no scheme, host, space or backslash')
  .optional()
  .describe('Path of this gateway to go to after signing in. Default: /me.')
