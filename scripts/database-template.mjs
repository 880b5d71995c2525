/**
 * Writes the files of an empty embedded database to an archive in dist/: `node scripts/database-template.mjs <file>`. With the archive, a new database
 * starts in a quarter of the time.
 */
import { writeFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'

const [, , file] = process.argv
const database = await PGlite.create()
const archive = await database.dumpDataDir('gzip')
writeFileSync(file, Buffer.from(await archive.arrayBuffer()))
await database.close()
