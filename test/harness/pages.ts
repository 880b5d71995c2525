/** Reads lists page by page, as a client does. */
import { expect } from 'vitest'
import type { TestApp, TestReply } from './app.ts'

/** Returns a function that follows the cursors of a list. It returns all rows in order, and the reply of each page. */
export function pagesOf(app: TestApp, path: string, field: string) {
  const read = (query: string, cookie: string): Promise<TestReply> => app.call('GET', `${path}${query}`, undefined, { cookie })
  return {
    read,
    /** Reads every page of a query, which begins with `?` or is empty. */
    // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
    async all(query: string, cookie: string): Promise<{ rows: any[]; pages: TestReply[] }> {
      const rows: unknown[] = []
      const pages: TestReply[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page = await read(`${query}${cursor === '' ? '' : `${query === '' ? '?' : '&'}cursor=${encodeURIComponent(cursor)}`}`, cookie)
        expect(page.status, page.text).toBe(200)
        pages.push(page)
        rows.push(...page.json[field])
        cursor = page.json.next_cursor
      }
      return { rows, pages }
    },
  }
}
