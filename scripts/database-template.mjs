/**
 * Makes the files of an empty embedded database once, as an archive in dist/: `node scripts/database-template.mjs <file>`. A new database that starts
 * from the archive needs a quarter of the time.
 */
import { writeFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'

const [, , file] = process.argv
const database = await PGlite.create()
const archive = await database.dumpDataDir('gzip')
writeFileSync(file, Buffer.from(await archive.arrayBuffer()))
await database.close()
