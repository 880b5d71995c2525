import { useMutation } from '@tanstack/react-query'
import { type ApiError, apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { toast } from '../../../ui/overlays/toast.tsx'
import { isRecord } from '../places.ts'
import { memoryChanged, readObject, type Version } from '../use-memory.ts'
import { historyText } from './text.ts'

interface Restore {
  readonly version: string
  /** The object as the page knows it. Undefined when it is deleted. */
  readonly current: Version | undefined
}

/** Returns the restore of versions of a key. It is a write, so that it can be undone. If somebody changed the object meanwhile, nothing is written. */
export function useRestore(key: string) {
  return useMutation({
    mutationFn: async ({ version, current }: Restore) => {
      const condition = typeof current?.etag === 'string' ? { ifMatch: current.etag } : { ifNoneMatch: '*' as const }
      if (!isRecord(key)) return api('restoreConsole', { body: { key, version }, ...condition })
      // A record is written by promotion only, so its old text is promoted again.
      const [, workspace, name = ''] = /^(?:org|workspaces\/([^/]+))\/records\/(.+)$/.exec(key) ?? []
      const { text } = await readObject(key, version)
      return api('promoteConsole', { body: { name, content: text ?? '', ...(workspace === undefined ? {} : { workspace_id: workspace }) }, ...condition })
    },
    onSuccess: () => toast(historyText.restored),
    onError: error => toast(messageOf(apiErrorOf(error)), 'bad'),
    onSettled: memoryChanged,
  })
}

const messageOf = (error: ApiError): string => (error.status === 412 ? historyText.changed : error.message)
