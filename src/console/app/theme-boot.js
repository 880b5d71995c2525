/* Runs before the page is drawn: applies the theme that the person chose. Without a choice the page follows the system. */
try {
  const theme = localStorage.getItem('brigade-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {}
