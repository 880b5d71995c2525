import { SurfaceError } from '../surface.ts'

/** Returns what was read. When the server does not exist for the caller, returns `nothing`, so that lists are empty as those of tools are. */
export async function orNothing<T>(work: Promise<T>, nothing: T): Promise<T> {
  try {
    return await work
  } catch (error) {
    const code = error instanceof SurfaceError ? error.data?.['code'] : undefined
    if (code === 'not_found' || code === 'forbidden') return nothing
    throw error
  }
}
