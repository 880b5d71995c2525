/** Backup and restore of an embedded installation: while it runs, after a kill, into an empty folder, and with journals that are newer than the backup. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../cli/run-here.ts'
import { chat, complaints, expectWhole, type Filled, fill, type Started, type Surroundings, spentOf, startOn, startSurroundings } from './installation.ts'

describe('backup and restore of an embedded installation', { timeout: 180_000 }, () => {
  let around: Surroundings
  let dataDir: string
  let filled: Filled
  let backup: string
  let running: Started
  const folderOf = (name: string) => join(around.folder, name)
  const brigade = (dir: string, ...words: string[]) => runHere(words, { ...around.env, DATA_DIR: dir })

  beforeAll(async () => {
    around = await startSurroundings()
    dataDir = folderOf('data')
    backup = folderOf('backup')
  })
  afterAll(async () => {
    await around.close()
    rmSync(around.folder, { recursive: true, force: true })
  })

  test('BACK-01 a backup of the running gateway, restored elsewhere, has the keys, budgets, ledger, memory with versions, and sealed values of that moment', async () => {
    const started = await startOn(around, dataDir)
    filled = await fill(started, around, 'folder')
    // Calls continue while the copy is made.
    const [made, ...during] = await Promise.all([brigade(dataDir, 'backup', backup, '--json'), ...Array.from({ length: 10 }, () => chat(started, filled.key))])
    expect(made.code, made.err).toBe(0)
    expect(during.every(reply => reply.status === 200)).toBe(true)
    expect(JSON.parse(made.out)).toMatchObject({ folder: backup, with_master_key: false })
    expect(existsSync(join(backup, 'master.key'))).toBe(false)
    expect(readdirSync(dataDir)).not.toContain('backup-staging')
    // These changes come after the backup, so the backup does not contain them.
    await started.call('PUT', `/v1/me/memory/o?key=${filled.notes}`, 'later', { token: filled.key })
    await started.gateway.app.keys.revoke(filled.orgId, filled.keyId)
    const again = await brigade(dataDir, 'backup', backup)
    expect(again.err).toContain('There is something at')
    expect((await brigade(dataDir, 'backup', join(dataDir, 'inside'))).err).toContain('is in DATA_DIR')
    await started.gateway.stop()

    const there = folderOf('restored')
    const keyless = await brigade(there, 'restore', backup)
    expect(keyless.err).toMatch(/holds no master key\. Put the one with the id [0-9a-f]{8} into/)
    expect(existsSync(join(there, 'db'))).toBe(false)
    mkdirSync(there, { recursive: true })
    cpSync(join(dataDir, 'master.key'), join(there, 'master.key'))
    const restored = await brigade(there, 'restore', backup)
    expect(restored.code, restored.err).toBe(0)
    expect(restored.out).toContain('what was revoked after that moment is valid again')
    const anew = await startOn(around, there)
    expect(await complaints(anew.gateway)).toEqual([])
    // The backup contains every call from before the copy. Calls during the copy may be in its journal or not.
    const spent = await spentOf(anew.gateway, filled)
    expect(spent).toBeGreaterThanOrEqual(filled.spentInr)
    await expectWhole(anew, { ...filled, spentInr: spent })
    expect(await complaints(anew.gateway)).toEqual([])
    await anew.gateway.stop()
    // A restore does not overwrite a folder with an installation.
    expect((await brigade(there, 'restore', backup)).err).toContain('holds an installation (db, journal, memory)')
  })

  test('a stopped installation can be backed up with its key; a damaged backup and a backup under another key are refused', async () => {
    const closed = folderOf('closed')
    const made = await brigade(dataDir, 'backup', closed, '--with-master-key')
    expect(made.code, made.err).toBe(0)
    expect(made.out).toContain('the master key is inside')
    const there = folderOf('from-closed')
    mkdirSync(join(there, 'restore-staging'), { recursive: true })
    mkdirSync(join(there, 'memory'), { recursive: true })
    // After a restore that was killed, no gateway starts on the folder, and another run of the restore begins again.
    await expect(startOn(around, there)).rejects.toThrow(/was stopped in the middle\. Run brigade restore again/)
    const restored = await brigade(there, 'restore', closed)
    expect(restored.code, restored.err).toBe(0)
    const anew = await startOn(around, there)
    // The key is refused, because it was revoked before this backup.
    expect((await chat(anew, filled.key)).status).toBe(401)
    expect(await complaints(anew.gateway)).toEqual([])
    running = anew

    const other = folderOf('other-key')
    mkdirSync(other)
    writeFileSync(join(other, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`)
    expect((await brigade(other, 'restore', closed)).err).toMatch(/master\.key has the id .*; the backup is sealed with/)
    const [file = ''] = readdirSync(join(closed, 'journal'))
    writeFileSync(join(closed, 'journal', file), 'x')
    expect((await brigade(folderOf('damaged'), 'restore', closed)).err).toMatch(/is damaged: journal\/\S+ has 1 bytes/)
    expect((await brigade(folderOf('none'), 'restore', folderOf('nowhere'))).err).toContain('is no backup')
    expect((await brigade(folderOf('none'), 'backup', folderOf('nothing'))).err).toContain('there is no embedded database')
  })

  test('journals that are newer than a restored database are replayed, so usage after the backup counts', async () => {
    const first = running
    const home = first.dataDir
    const { orgId, userId } = await first.gateway.app.orgs.createOrg({ name: 'Later', ownerEmail: 'later@people.test' })
    const { id: keyId, key } = await first.gateway.app.keys.create({
      orgId,
      userId,
      workspaceId: null,
      name: 'k',
      scope: 'full',
      rpmLimit: null,
      dailyLimit: null,
    })
    await first.gateway.app.limits.budgets.set(orgId, 'key', String(keyId), 50_000_000n)
    expect((await chat(first, key)).status).toBe(200)
    const old = folderOf('old')
    expect((await brigade(home, 'backup', old)).code).toBe(0)
    expect((await chat(first, key)).status).toBe(200)
    await first.gateway.stop()
    // A second process that ran after the backup. The older database does not know it.
    const second = await startOn(around, home)
    expect((await chat(second, key)).status).toBe(200)
    await second.gateway.app.limits.flushNow()
    const spent = await spentOf(second.gateway, { orgId, keyId })
    await second.gateway.stop()
    const journals = folderOf('journals')
    renameSync(join(home, 'journal'), journals)
    for (const name of ['db', 'memory']) rmSync(join(home, name), { recursive: true, force: true })
    expect((await brigade(home, 'restore', old)).code).toBe(0)
    for (const name of readdirSync(journals)) if (/^\d+\.\d+$/.test(name)) cpSync(join(journals, name), join(home, 'journal', name))
    const third = await startOn(around, home)
    expect(await spentOf(third.gateway, { orgId, keyId })).toBe(spent)
    expect((await chat(third, key)).status).toBe(200)
    await third.gateway.app.limits.flushNow()
    expect(await complaints(third.gateway)).toEqual([])
    await third.gateway.stop()
    expect(readFileSync(join(old, 'backup.json'), 'utf8')).not.toContain(key)
  })
})
