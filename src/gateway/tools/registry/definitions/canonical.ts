import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { setOwn } from '../../../../platform/values/json.ts'
import type { ListedTool } from '../callable-tool.ts'

/** The members of a definition that MCP has today. All others are counted together, so that none of them can take the place of a known one. */
const known = new Set(['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations', 'icons', 'execution', '_meta'])

/**
 * Returns the canonical form (RFC 8785) of a definition: its known members beside `v` and `server_slug`, and unknown members below `other`. The order of
 * members does not count. Everything else does. Throws an Error for a value that JSON cannot express, such as half of a surrogate pair.
 * Decision 0782 says why.
 */
export function canonicalForm(slug: string, tool: ListedTool): string {
  const form: Record<string, unknown> = { v: 1, server_slug: slug }
  const other: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(tool)) setOwn(known.has(name) ? form : other, name, value)
  if (Object.keys(other).length > 0) form['other'] = other
  return canonicalize(form) ?? ''
}

/** Returns the SHA-256 of the canonical form, in hexadecimal. Throws as `canonicalForm` does. */
export function definitionHash(slug: string, tool: ListedTool): string {
  return createHash('sha256').update(canonicalForm(slug, tool)).digest('hex')
}
