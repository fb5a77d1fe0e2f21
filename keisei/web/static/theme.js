"use strict";(()=>{try{let e=JSON.parse(localStorage.getItem("keisei")??"{}").theme;e&&(document.documentElement.dataset.theme=e)}catch{}})();
