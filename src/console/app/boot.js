/*
 * Runs before the page is drawn. It applies the theme that the person chose; without a choice the page follows the system. It asks who is signed in and loads the
 * file of the page, both while the scripts of the shell load. The build writes the names of the files.
 */
try {
  const theme = localStorage.getItem('brigade-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {}
if (location.pathname !== '/console/signed-in') {
  globalThis.brigadeMe = fetch('/me', { headers: { accept: 'application/json' } }).catch(() => null)
  const filesOf = FILES_OF_PAGES
  const [, , page = '', object] = location.pathname.split('/')
  const name = page === 'agents' && object ? 'agent' : page
  for (const file of Object.hasOwn(filesOf, name) ? filesOf[name] : [])
    document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href: file, crossOrigin: '' }))
}
