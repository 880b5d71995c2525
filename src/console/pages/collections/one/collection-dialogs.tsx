import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { invalidate } from '../../../api/queries.ts'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import type { WholeCollection } from '../search.ts'
import { text } from '../text.ts'
import { collectionsChanged } from '../use-collections.ts'

interface CollectionDialogProps {
  readonly collection: WholeCollection
  readonly onClose: () => void
}

/** Asks before everybody sees a collection. */
export function PublishCollection({ collection: { id }, onClose }: CollectionDialogProps) {
  const publish = useMutation({
    mutationFn: () => api('changeCollection', { path: { id }, body: { public: true } }),
    onSuccess: async () => {
      await collectionsChanged()
      toast(text.published)
      onClose()
    },
  })
  return (
    <Confirm
      title={text.publishTitle}
      act={text.publish}
      isBusy={publish.isPending}
      error={publish.error && apiErrorOf(publish.error)}
      onConfirm={() => publish.mutate()}
      onClose={onClose}
    >
      <p>{text.publishAbout}</p>
    </Confirm>
  )
}

/** Makes a public collection private again. */
export function useUnpublish({ id }: Pick<WholeCollection, 'id'>) {
  return useMutation({
    mutationFn: () => api('changeCollection', { path: { id }, body: { public: false } }),
    onSuccess: async () => {
      await collectionsChanged()
      toast(text.unpublished)
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}

/** Asks before a collection is deleted. Nobody can undo it, so the name is typed. */
export function DeleteCollection({ collection: { id, name, slug }, onClose }: CollectionDialogProps) {
  const toList = useNavigate()
  const remove = useMutation({
    mutationFn: () => api('deleteCollection', { path: { id } }),
    onSuccess: async () => {
      toast(text.removed(name))
      void toList({ to: '/collections' })
      await invalidate('listCollections', 'listPublicCollections')
    },
  })
  return (
    <Confirm
      title={text.removeTitle}
      act={text.remove}
      nameToType={slug}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{text.removeAbout}</p>
    </Confirm>
  )
}
