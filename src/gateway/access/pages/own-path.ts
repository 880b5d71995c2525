import { z } from 'zod'

/** A path of this gateway. It begins with exactly one slash and is printable ASCII. It has no backslash, because browsers treat a backslash as a slash. */
const ownPath = /^\/(?![/\\])[!-[\]-~]*$/
const ownPathMax = 2000

/** Returns true when a browser that is redirected to this text stays on the gateway. */
export function isOwnPath(text: string): boolean {
  return text.length <= ownPathMax && ownPath.test(text)
}

/** Whether a browser finds the console here: the setting CONSOLE. */
export interface HomePage {
  readonly hasConsole: boolean
}

/** The path to which a person goes after sign-in who asked for no other: the console in a browser. A program gets /me, which says who is signed in. */
export function homePath(accept: string | undefined, hasConsole: boolean): string {
  return hasConsole && accept?.includes('text/html') === true ? '/console' : '/me'
}

/** The query parameter with the path to which the browser goes after sign-in. */
export const returnToSchema = z
  .string()
  .refine(isOwnPath, 'must be a path of this gateway: it begins with one "/" and holds no scheme, host, space or backslash')
  .optional()
  .describe('Path of this gateway to go to after signing in. Default: /console for a browser, /me for other clients.')
