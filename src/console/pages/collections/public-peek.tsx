import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiQuery } from '../../api/queries.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { StepsShown } from '../steps/step-list.tsx'
import { ImportDialog } from './import-dialog.tsx'
import { Readme } from './readme.tsx'
import { text } from './text.ts'
import { useCollections, useFork, useStar } from './use-collections.ts'

interface PublicPeekProps {
  readonly slug: string
  readonly isAdmin: boolean
  readonly owners: readonly string[]
  readonly onFork: (id: number) => void
  readonly onClose: () => void
}

/** A public collection beside the list, with its readme. A person stars it, forks it, or makes it the routing of the organisation. */
export function PublicPeek({ slug, isAdmin, owners, onFork, onClose }: PublicPeekProps) {
  const collection = useQuery(apiQuery('getPublicCollection', { path: { slug } }))
  const own = useCollections()
  const isOfOthers = own.data?.every(one => one.slug !== slug) ?? true
  const star = useStar(slug)
  const fork = useFork(slug, made => onFork(made.id))
  const [isImporting, setImporting] = useState(false)
  // The public list is the same for everybody, so the first click gives the star, which changes nothing when it is given already.
  const isStarred = star.data?.starred ?? false
  const found = collection.data
  return (
    <Peek
      title={found?.name ?? slug}
      subtitle={<code>{slug}</code>}
      onClose={onClose}
      actions={
        found && (
          <>
            {isAdmin && (
              <Button look="primary" icon="split" onClick={() => setImporting(true)}>
                {text.import}
              </Button>
            )}
            <Button icon="copy" isBusy={fork.isPending} onClick={() => fork.mutate()}>
              {text.forkAct}
            </Button>
            <Button icon={isStarred ? 'close' : 'good'} isBusy={star.isPending} onClick={() => star.mutate(!isStarred)}>
              {isStarred ? text.unstar : text.star}
            </Button>
          </>
        )
      }
    >
      <Loaded query={collection}>
        {({ model, steps, readme_md: readme, stars, forks, version }) => (
          <>
            <p className="collection-facts">
              <code>{model}</code>
              <span>{text.version(version)}</span>
              <span>{text.stars(star.data?.stars ?? stars)}</span>
              <span>{text.forks(forks)}</span>
            </p>
            <section className="stack-3" aria-label={text.steps}>
              <h3>{text.steps}</h3>
              <StepsShown steps={steps} />
            </section>
            <section className="stack-3" aria-label={text.readme}>
              <h3>{text.readme}</h3>
              <Readme markdown={readme} headingAbove={3} />
            </section>
            {!isAdmin && <p className="quiet">{text.introAsk(owners)}</p>}
          </>
        )}
      </Loaded>
      {isImporting && found && <ImportDialog collection={found} isOfOthers={isOfOthers} onClose={() => setImporting(false)} />}
    </Peek>
  )
}
