import { describe, expect, test } from 'vitest'
import { isExpired, listPrefixes, mayRead, mayWrite, pathsOf, readablePrefixes } from '../../src/memory/access/path-rules.ts'
import { errorCode } from './service.ts'

const member = { userSpace: '7', workspaceIds: [3], sharedSpaces: ['plans'] }
const loner = { userSpace: 'key-5', workspaceIds: [], sharedSpaces: [] }
const rights = (caller: typeof member, key: string): string => `${mayRead(caller, key) ? 'R' : '-'}${mayWrite(caller, key) ? 'W' : '-'}`

describe('memory scopes', () => {
  test.each([
    ['org/records/a', 'R-', 'R-'],
    ['org/other', '--', '--'],
    ['org/records', '--', '--'],
    ['workspaces/3/records/a', 'R-', '--'],
    ['workspaces/3/journal/a', 'RW', '--'],
    ['workspaces/3/other/a', '--', '--'],
    ['workspaces/33/journal/a', '--', '--'],
    ['shared/plans/a', 'RW', '--'],
    ['shared/plans2/a', '--', '--'],
    ['users/7/a', 'RW', '--'],
    ['users/77/a', '--', '--'],
    ['users/key-5/a', '--', 'RW'],
    ['agents/a', 'RW', 'RW'],
    ['agents', '--', '--'],
    ['.brigade-probe/a', '--', '--'],
    ['anything/else', '--', '--'],
  ])('the rights on the path %s are %s for the caller inside and %s for the caller outside', (key, inside, outside) => {
    expect(rights(member, key)).toBe(inside)
    expect(rights(loner, key)).toBe(outside)
  })

  test('a broad prefix lists the readable objects below it, and a foreign prefix is refused', async () => {
    expect(listPrefixes(member, '')).toEqual(readablePrefixes(member))
    expect(listPrefixes(member, 'users/')).toEqual(['users/7/'])
    expect(listPrefixes(member, 'users/7/notes')).toEqual(['users/7/notes'])
    expect(listPrefixes(member, 'workspaces/3/')).toEqual(['workspaces/3/records/', 'workspaces/3/journal/'])
    for (const prefix of ['users/8/', 'users/77/', 'shared/other/', 'x', 'org/x']) expect(await errorCode(() => listPrefixes(member, prefix))).toBe('forbidden')
    expect(await errorCode(() => listPrefixes(loner, 'workspaces/'))).toBe('forbidden')
  })

  test('the list of paths contains only scopes that exist', () => {
    expect(pathsOf(member)).toEqual({ user: 'users/7/', workspace: 'workspaces/3/', org: 'org/', shared: ['shared/plans/'] })
    expect(pathsOf(loner)).toEqual({ user: 'users/key-5/', org: 'org/' })
  })

  test('only journal entries expire, and not before journal_ttl_days have passed', () => {
    const day = 86_400_000
    expect(isExpired('workspaces/3/journal/a', 0, 30, 30 * day)).toBe(false)
    expect(isExpired('workspaces/3/journal/a', 0, 30, 30 * day + 1)).toBe(true)
    expect(isExpired('workspaces/3/records/a', 0, 30, 300 * day)).toBe(false)
    expect(isExpired('agents/journal/a', 0, 30, 300 * day)).toBe(false)
  })
})
