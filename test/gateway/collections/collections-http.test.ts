/** Collections over HTTP. All parts share one gateway, because starting a gateway takes longer than most of the tests. */
import { afterAll, beforeAll, describe } from 'vitest'
import { alertsOfCollections } from './alerts.part.test.ts'
import { canariesOfCollections } from './canaries.part.test.ts'
import { monitoringOfCollections } from './monitoring.part.test.ts'
import { ownCollections } from './own.part.test.ts'
import { sharedCollections } from './sharing.part.test.ts'
import { startWatched, type Watched } from './watched.ts'

let watched: Watched
beforeAll(async () => {
  watched = await startWatched()
})
afterAll(() => watched.stop())

const world = (): Watched => watched
ownCollections(world)
sharedCollections(world)
describe('alerts of collections', () => alertsOfCollections(world))
describe('canaries of collections', () => canariesOfCollections(world))
// This part moves the clock by months, so it comes last.
describe('monitoring of collections', () => monitoringOfCollections(world))
