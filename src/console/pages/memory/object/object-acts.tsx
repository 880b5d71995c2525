import { useState } from 'react'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Menu, MenuItem, MenuLine } from '../../../ui/overlays/menu.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { DeleteObject } from '../dialogs/delete-object.tsx'
import { PromoteObject } from '../dialogs/promote-object.tsx'
import { ShareObject } from '../dialogs/share-object.tsx'
import { isWritable, nameOf, type Places } from '../places.ts'
import { text } from '../text.ts'
import { bytesAddress, type MemoryObject } from '../use-memory.ts'

type Act = 'share' | 'promote' | 'delete'

/** The acts on an object beside editing. What the gateway would refuse is not offered. */
export function ObjectActs({ places, object }: { readonly places: Places; readonly object: MemoryObject }) {
  const me = useMe()
  const [act, setAct] = useState<Act | null>(null)
  const close = (): void => setAct(null)
  const { text: content } = object
  const asText = content === null ? null : { ...object, text: content }
  const copyLink = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(location.href)
      toast(text.linkCopied)
    } catch {
      toast(text.linkNotCopied, 'bad')
    }
  }
  return (
    <>
      <Menu label={text.acts(nameOf(object.key))} trigger={<Icon name="more" />}>
        <MenuItem icon="link" onClick={() => void copyLink()}>
          {text.copyLink}
        </MenuItem>
        <MenuItem icon="download" onClick={() => save(object.key)}>
          {text.download}
        </MenuItem>
        {asText && (
          <>
            <MenuLine />
            <MenuItem icon="share" onClick={() => setAct('share')}>
              {text.share}
            </MenuItem>
            {hasRole(me, 'admin') && (
              <MenuItem icon="promote" onClick={() => setAct('promote')}>
                {text.promote}
              </MenuItem>
            )}
          </>
        )}
        {isWritable(object.key) && (
          <>
            <MenuLine />
            <MenuItem icon="trash" isDanger onClick={() => setAct('delete')}>
              {text.remove}
            </MenuItem>
          </>
        )}
      </Menu>
      {act === 'share' && asText && <ShareObject places={places} object={asText} onClose={close} />}
      {act === 'promote' && asText && <PromoteObject places={places} object={asText} onClose={close} />}
      {act === 'delete' && <DeleteObject object={object} onClose={close} />}
    </>
  )
}

/** Lets the browser save an object under the name of its key. */
function save(key: string): void {
  const link = document.createElement('a')
  link.href = bytesAddress(key)
  link.download = nameOf(key)
  link.click()
}
