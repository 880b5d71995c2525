import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError, apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { Check } from '../../../ui/forms/check.tsx'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { folderOf, nameOf } from '../places.ts'
import { type MemoryObject, memoryChanged } from '../use-memory.ts'
import { dialogText } from './text.ts'

const { remove: words } = dialogText

/** Deletes the object that the page has read. If somebody changed it since, nothing is deleted. */
export function DeleteObject({ object, onClose }: { readonly object: MemoryObject; readonly onClose: () => void }) {
  const navigate = useNavigate()
  const [isErased, setErased] = useState(false)
  const name = nameOf(object.key)
  const remove = useMutation({
    mutationFn: () => api('removeConsole', { query: { key: object.key, ...(isErased ? { history: 'erase' as const } : {}) }, ifMatch: object.etag }),
    onSuccess: async () => {
      onClose()
      toast(words.done(name))
      // The page goes first, so that it does not read what is gone.
      await navigate({ to: '/memory/$', params: { _splat: folderOf(object.key).slice(0, -1) } })
      await memoryChanged()
    },
  })
  const failure = remove.error === null ? null : apiErrorOf(remove.error)
  const error = failure?.status === 412 ? new ApiError(words.changed, failure) : failure
  const [before, strong, after] = words.about(name)
  return (
    <Confirm
      title={words.title}
      act={words.act}
      {...(isErased ? { nameToType: name } : {})}
      isBusy={remove.isPending}
      error={error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        {before}
        <strong>{strong}</strong>
        {after}
      </p>
      <Check label={words.erase} hint={words.eraseHint} isChecked={isErased} onChange={setErased} />
    </Confirm>
  )
}
